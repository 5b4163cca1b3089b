package source

import (
	"strings"
	"testing"
)

// Names of labels, lives, predictions and qualities of parts do not name channels.
func TestNamesThatSayLabels(t *testing.T) {
	for says, names := range map[string]string{
		"the wear or the state of the tool": "VB,VB_um,VBmax [µm],flank_wear_mm,wear_rate,Tool Wear,磨损,KT,KT [µm],flute_1,VB_flute_2,flank,usure,desgaste mm,is_worn,worn,label,label_healthy,worn_label,y_true," +
			"target,class,Klasse,Zustand,etat_outil,état,estado,状態,состояние,anomaly,anomaly_score,outlier_score,health_index,HI,healthState,degradation,damage_index,failure,Machine failure,TWF,HDF,broken,defekt,stumpf,severity,fault,RUL,RUL_s,rul_est,grade,nok,tool_ok,y",
		"how much of the tool's life is used or left": "life_pct,life [%],tool_life_used,remaining_useful_life,Remaining Life (min),Standzeit_rest,Reststandzeit,Standzeit,Einsatzzeit,Standweg",
		"what a model predicts":                       "VB_pred,prediction,pred,proba,proba_1,y_hat,predicted class,class_pred,prob_worn,pred_rul",
		"how good the part is":                        "Ra,Ra [µm],roughness,surface_roughness,roughness_Ra_um,Rauheit,quality,part_quality,Qualität,OK_NOK,ok/ng,Gut,Ausschuss,judge",
	} {
		for _, name := range strings.Split(names, ",") {
			if got := SaysLabel(name, []string{"time", "tool", "load", name}); got != says {
				t.Errorf("%s: says %q, want %q", name, got, says)
			}
		}
	}
}

// Names of channels of machines, loggers and data sets are none of these, nor are features.
func TestNamesThatSayChannels(t *testing.T) {
	names := strings.Split("ax,ay,az,a_x,acc,Acc_X [g],accel-1,vib,vibration_x,vib_table,vib_spindle,Fx,Fy,Fz,F_c,force_z,Kraft X,Schnittkraft,thrust,Mz,torque,Drehmoment,feed,feed_rate,feedrate,Vorschub,spindle_load,load,Last,current,Strom,"+
		"I_u,Iu_s,Vu_s,smcAC,smcDC,current_spindle,spindle_current,spindle_speed,rpm,RPM,Drehzahl,n,S1_CurrentFeedback,X1_ActualPosition,Y1_OutputPower,Z1_DCBusVoltage,M1_CURRENT_FEEDRATE,AE,AE_RMS,AE_table,AE_spindle,Micro,"+
		"microphone,audio,Schalldruck,temp,gearbox_temp,coolant_temp,Temperatur Lager,oil_pressure,Druck,coolant_quality_sensor_ph,flow,humidity,voltage,power,P_wirk,energy_rate,position,pos_x,target_speed,TargetPosition,target_torque,class_d_amp_temp,state_of_charge,status_word_torque,"+
		"drive_status_temp,condition_monitor_vib,health_monitor_temp,tool_load,tool_temp,tool_vib,toolholder_strain,flute_force,flute_1_force,battery_life_voltage,life_support_flow,prediction_error_force,probe_x,probe_temp,good_signal_level,quality_factor,roughing_load,"+
		"hi_freq_vib,high,hip,label_printer_current,KT_torque,ra_axis_force,rail_pressure,raw,range_vib,pass_count_load,judder,gutter_flow,Gute_Schwingung,damage_sensor_mv,failure_current,fault_current,broken_bar_freq,dull_noise,sharpness_kHz,sharp_filter_out,grade_of_oil_visc,"+
		"ok_button_v,anomaly_filter_out,DE_time,FE_time,BA_time,X097_DE_time,Ch1,Channel 1,Kanal 2,signal,sensor3,mean,rms,peak,kurt,skew,crest,n1,ax.rms,ax.peak,thrust.mean,f_rms,VC,vc,DOC,Rz,Rx,measured_force,hardware_temp,ware_temp,exposure,pressure,software_rate", ",")
	for _, name := range names {
		if says := SaysLabel(name, names); says != "" {
			t.Errorf("%s: says %q", name, says)
		}
	}
	if len(names) < 100 {
		t.Errorf("%d names", len(names))
	}
}

// A column y is the label of a table, and an axis next to x or z, or the signal next to a time.
func TestNameY(t *testing.T) {
	for _, tc := range []struct {
		names string
		label bool
	}{{"time,tool,y", true}, {"rms,kurt,n1,Y", true}, {"x,y,z", false}, {"tool,a,y,Z [g]", false}, {"t,y", false}, {"x1,y,b", false}} {
		names := strings.Split(tc.names, ",")
		for _, name := range names {
			if strings.EqualFold(name, "y") && (SaysLabel(name, names) != "") != tc.label {
				t.Errorf("%s: y is a label: %v", tc.names, !tc.label)
			}
		}
	}
}
